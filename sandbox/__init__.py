"""A real cluster on one machine without containers, to try the package and to test it.

It runs etcd, the API server, the controller manager, Volcano, Kthena, and KWOK for fake GPU nodes,
all on loopback and in one folder. The package imports nothing from here.
"""
