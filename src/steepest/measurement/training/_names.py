"""The names of what a monitor records of each step besides quantities of ``measure``."""

LOSS = "loss of the batch"
GRADIENT = "gradient norm of the batch"
UNCLIPPED = "gradient norm before clipping"
CLIPPED = "share of steps clipped"
UPDATE = "update over weight"
LARGEST = "largest update over weight of a layer"
WEIGHTS = "norm of the weights"
DECAY = "decay over update"
IDLE = "largest share of idle units of a layer"
SATURATED = "largest share of saturated units of a layer"
RANK = "effective rank of the features"
SIZE = "size of the outputs"
LEFT_OVER = "share of the gradient from earlier steps"
REPEATS = "share of inputs that the outputs repeat, beyond neighbours alike"
HELD_OUT = "held-out loss"

FIRST_ORDER = (
    LOSS,
    GRADIENT,
    UNCLIPPED,
    CLIPPED,
    UPDATE,
    LARGEST,
    WEIGHTS,
    DECAY,
    IDLE,
    SATURATED,
    RANK,
    SIZE,
    LEFT_OVER,
    REPEATS,
    HELD_OUT,
)
PARTS = {LARGEST: "updates", IDLE: "idle", SATURATED: "saturated"}
"""Where a record has the numbers of all layers, of which a quantity is the largest."""

EVALUATION = "evaluation"
FROZEN_STATISTICS = "frozen_statistics"
SHARES = "shares"
"""Facts of a record: whether the module trained in evaluation mode, which normalizing layers did, and of how many
outputs all are shares that sum to one."""
