"""HyperNode topologies: input schema, plan and rules."""
