"""The inputs: they are read, not computed."""

from steepest.kernels.wide._rule import Rule, rule_for
from steepest.nn.layers._nodes import Input


@rule_for(Input)
class OfInput(Rule[Input]):
    """Numbers of all channels stand at each position."""

    def arrays(self, dual) -> int:
        """Count one: the inputs."""
        return 1
