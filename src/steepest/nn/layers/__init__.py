"""Networks layer by layer: one description of the finite network and of its limit."""

from steepest.nn.layers._attention import attention as attention
from steepest.nn.layers._composition import add as add
from steepest.nn.layers._composition import concatenate as concatenate
from steepest.nn.layers._composition import multiply as multiply
from steepest.nn.layers._composition import serial as serial
from steepest.nn.layers._dropout import dropout as dropout
from steepest.nn.layers._elementwise import identity as identity
from steepest.nn.layers._elementwise import layer_norm as layer_norm
from steepest.nn.layers._embedding import positional_embedding as positional_embedding
from steepest.nn.layers._layer import Layer as Layer
from steepest.nn.layers._linear import conv as conv
from steepest.nn.layers._linear import dense as dense
from steepest.nn.layers._mixing import aggregate as aggregate
from steepest.nn.layers._mixing import resize as resize
from steepest.nn.layers._network import LayeredNetwork as LayeredNetwork
from steepest.nn.layers._network import network as network
from steepest.nn.layers._nodes import WideLimit as WideLimit
from steepest.nn.layers._pooling import flatten as flatten
from steepest.nn.layers._pooling import global_pool as global_pool
from steepest.nn.layers._pooling import global_sum_pool as global_sum_pool
from steepest.nn.layers._pooling import max_pool as max_pool
from steepest.nn.layers._pooling import pool as pool
from steepest.nn.layers._pooling import sum_pool as sum_pool
from steepest.nn.layers._selection import select as select
