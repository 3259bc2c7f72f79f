"""The policy pack. Pulumi runs this folder, and tests import it."""
