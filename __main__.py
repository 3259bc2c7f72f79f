"""The stack program: deploys the servings of stacks/Pulumi.<stack>.yaml."""

from kthena_components.resources.stack import main

main()
