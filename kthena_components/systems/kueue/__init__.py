"""Kueue: LocalQueues, ClusterQueues and their quotas."""
