"""The inputs: they are read, not computed."""

from steepest.kernels.wide._rule import Rule, rule_for
from steepest.nn.layers._nodes import Input


@rule_for(Input)
class OfInput(Rule[Input]):
    """Numbers of all channels stand at each position."""

    def degree(self, read):
        """Count one: kernels are products of both inputs."""
        return 1

    def arrays(self, dual) -> int:
        """Count one: the inputs."""
        return 1
