"""Kinds of Volcano and Kthena, the two systems whose terms a plan uses."""

VOLCANO = "volcano"
"""The name of its scheduler."""

POD_GROUP = ("scheduling.volcano.sh", "PodGroup")

QUEUE = ("scheduling.volcano.sh", "Queue")

HYPER_NODE = ("topology.volcano.sh", "HyperNode")

JOB = ("batch.volcano.sh", "Job")

MODEL_SERVER = ("networking.serving.volcano.sh", "ModelServer")

MODEL_SERVING = ("workload.serving.volcano.sh", "ModelServing")
