// Command kthena-webhook serves Kthena's own admission of its kinds on loopback.
//
// The controller manager and the router serve it too, but on every address, and only with the files that a pod gets in a cluster.
// The code that judges is the same: this program calls it and adds nothing.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"time"

	autoscaler "github.com/volcano-sh/kthena/pkg/autoscaler/webhook"
	router "github.com/volcano-sh/kthena/pkg/kthena-router/webhook"
	booster "github.com/volcano-sh/kthena/pkg/model-booster-controller/webhook"
	"github.com/volcano-sh/kthena/pkg/model-serving-controller/webhook"
)

func main() {
	address := flag.String("address", "127.0.0.1:8443", "host and port to listen on")
	certificate := flag.String("tls-cert-file", "", "certificate in PEM")
	key := flag.String("tls-private-key-file", "", "private key of the certificate in PEM")
	flag.Parse()

	routes := http.NewServeMux()
	routes.HandleFunc("/validate-workload-ai-v1alpha1-modelserving", webhook.NewModelServingValidator().Handle)
	routes.HandleFunc("/validate-workload-ai-v1alpha1-autoscalingpolicy", autoscaler.NewAutoscalingPolicyValidator().Handle)
	routes.HandleFunc("/validate/modelbooster", booster.NewModelValidator().Handle)
	routing := router.NewKthenaRouterValidator(nil, 0)
	routes.HandleFunc("/validate/modelroute", routing.HandleModelRoute)
	routes.HandleFunc("/validate/modelserver", routing.HandleModelServer)
	routes.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusOK)
	})
	server := &http.Server{
		Addr:              *address,
		Handler:           routes,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}
