"""The stack program: deploys what stacks/Pulumi.<stack>.yaml describes."""

from kthena_components.resources.stack import main

main()
