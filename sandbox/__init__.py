"""A real cluster on one machine, without containers: for trying the package, and for its tests.

etcd, the API server, the controller manager, Volcano, Kthena and KWOK's fake GPU nodes, all on
loopback, in one folder. Nothing here is imported by the package.
"""
