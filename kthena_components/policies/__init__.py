"""The policy pack; needs the extra `policy`. cli/policy_pack.py writes the folder for Pulumi."""
