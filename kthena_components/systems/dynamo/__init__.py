"""NVIDIA Dynamo: DynamoGraphDeployment and DynamoComponentDeployment."""
