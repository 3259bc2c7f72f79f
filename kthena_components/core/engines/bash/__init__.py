"""What a shell script starts, without running it.

`quick.py` and `tree.py` parse, `run.py` follows every path of the statements, and `shells.py` is
the way in. What is not known on a path is a gap or a doubt, never a guess. Only `session.py` is
loaded before a script is seen.
"""
