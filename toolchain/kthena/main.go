// Command kthena-webhook serves Kthena's own admission of ModelServings on loopback.
//
// The controller manager serves it too, but on every address, and only with the files that a pod gets in a cluster.
// The code that judges is the same: this program calls it and adds nothing.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/volcano-sh/kthena/pkg/model-serving-controller/webhook"
)

func main() {
	address := flag.String("address", "127.0.0.1:8443", "host and port to listen on")
	certificate := flag.String("tls-cert-file", "", "certificate in PEM")
	key := flag.String("tls-private-key-file", "", "private key of the certificate in PEM")
	flag.Parse()

	routes := http.NewServeMux()
	routes.HandleFunc("/validate-workload-ai-v1alpha1-modelserving", webhook.NewModelServingValidator().Handle)
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
