"""The claims, one a file, one folder a chapter. Importing this package imports no claim and no JAX."""

from ._catalogue import Entry as Entry
from ._catalogue import catalogue as catalogue
from ._catalogue import entry as entry
from ._catalogue import load as load
from ._catalogue import write_template as write_template
