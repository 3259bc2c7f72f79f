// Serve one model with 16 GPUs on 2 nodes. The cluster needs only Volcano.
import * as kthena from "@pulumi/kthena";

const chat = new kthena.ModelServing("chat", {
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
