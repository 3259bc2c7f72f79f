// Serve one model with 16 GPUs on 2 nodes. The files of the stacks have what differs.
import * as kthena from "@pulumi/kthena";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const chat = new kthena.ModelServing("chat", {
    replicas: config.requireNumber("replicas"),
    roles: [{
        name: "serve",
        workerReplicas: 1,
        engine: {
            kind: "vllm",
            image: "vllm/vllm-openai:v0.33.0",
            model: "meta-llama/Llama-3.1-405B-Instruct-FP8",
            parallelism: { tensor: 8, pipeline: 2 },
        },
        resources: { gpusPerPod: 8 },
    }],
    expose: { port: 80 },
});

export const endpoint = chat.endpoint;
