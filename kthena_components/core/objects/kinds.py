"""Kinds of Volcano and of Kthena, the two systems whose words a plan speaks."""

POD_GROUP = ("scheduling.volcano.sh", "PodGroup")

QUEUE = ("scheduling.volcano.sh", "Queue")

HYPER_NODE = ("topology.volcano.sh", "HyperNode")

JOB = ("batch.volcano.sh", "Job")

MODEL_SERVING = ("workload.serving.volcano.sh", "ModelServing")
