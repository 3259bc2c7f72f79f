// Serve one model with 16 GPUs on 2 nodes. The cluster needs only Volcano.
package main

import (
	"example.com/pulumi-kthena/sdk/go/kthena"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		chat, err := kthena.NewModelServing(ctx, "chat", &kthena.ModelServingArgs{
			Roles: kthena.ServingRoleArray{kthena.ServingRoleArgs{
				Name:           "serve",
				WorkerReplicas: pulumi.IntRef(1),
				Engine: kthena.EngineArgs{
					Kind:        kthena.EngineKindVLLM,
					Image:       pulumi.String("vllm/vllm-openai:v0.33.0"),
					Model:       pulumi.String("meta-llama/Llama-3.1-405B-Instruct-FP8"),
					Parallelism: kthena.ParallelismArgs{Tensor: pulumi.IntRef(8), Pipeline: pulumi.IntRef(2)},
				},
				Resources: kthena.ResourcesArgs{GpusPerPod: pulumi.IntRef(8)},
			}},
			Expose: kthena.ExposeArgs{Port: pulumi.IntRef(80)},
		})
		if err != nil {
			return err
		}
		ctx.Export("endpoint", chat.Endpoint)
		return nil
	})
}
