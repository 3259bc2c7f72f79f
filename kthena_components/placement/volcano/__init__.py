"""What Volcano's scheduler does: which group it places, and on which nodes. Pure.

Each module cites the file of Volcano v1.14.1 that it follows. docs/fit.md lists what is modelled.
"""
