"""What a shell script starts, without running it.

`syntax.py` and `tree.py` parse, `run_statements.py` follows every path of the statements, and
`run_script.py` is the way in. What is not known on a path is a gap or a doubt, never a guess. Only
`shared_state.py` is loaded before a script is seen.
"""
