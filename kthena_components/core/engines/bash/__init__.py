"""What a shell script starts, without running it.

`quick.py` and `tree.py` parse, `run.py` follows every path of the statements, and `shells.py` is
the way in. What is not known on a path is a gap or a doubt, never a guess.
"""

from kthena_components.core.engines.bash.session import BeyondError, Run, Session, Started
from kthena_components.core.engines.bash.shells import BrokenError, Script, run_script

__all__ = ["BeyondError", "BrokenError", "Run", "Script", "Session", "Started", "run_script"]
