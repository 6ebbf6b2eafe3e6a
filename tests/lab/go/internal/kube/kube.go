// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kube talks to the API server from inside a pod: the few calls that the stand-ins make, without a client library's weight.
package kube

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Client is a connection with a bearer token that is read anew for every call, since the kubelet rotates it.
type Client struct {
	Base      string
	TokenFile string
	HTTP      *http.Client
}

// Meta is the part of an object's metadata that the stand-ins look at.
type Meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Object has the metadata, and the rest as it came.
type Object struct {
	Metadata Meta           `json:"metadata"`
	Spec     map[string]any `json:"spec"`
}

// InCluster is the client of the pod's own service account.
func InCluster() (*Client, error) {
	authority, err := os.ReadFile(filepath.Join(serviceAccount, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt holds no certificate", serviceAccount)
	}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return &Client{
		Base:      "https://" + address,
		TokenFile: filepath.Join(serviceAccount, "token"),
		HTTP:      &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
	}, nil
}

// Node reads a Node.
func (c *Client) Node(name string) (Object, error) {
	var node Object
	return node, c.call(http.MethodGet, "/api/v1/nodes/"+name, "", nil, &node)
}

// Nodes lists the Nodes that a label selector matches.
func (c *Client) Nodes(selector string) ([]Object, error) {
	return c.list("/api/v1/nodes", selector)
}

// Pods lists a namespace's pods on one node that a label selector matches.
func (c *Client) Pods(namespace, selector, node string) ([]Object, error) {
	return c.list("/api/v1/namespaces/"+namespace+"/pods", selector, "fieldSelector", "spec.nodeName="+node)
}

// PatchNode merges labels and annotations into a Node's; nil values delete.
func (c *Client) PatchNode(name string, labels, annotations map[string]any) error {
	metadata := map[string]any{}
	if labels != nil {
		metadata["labels"] = labels
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return c.call(http.MethodPatch, "/api/v1/nodes/"+name, "application/merge-patch+json", map[string]any{"metadata": metadata}, nil)
}

// Get reads any object into `into`.
func (c *Client) Get(path string, into any) error {
	return c.call(http.MethodGet, path, "", nil, into)
}

// Patch sends a strategic merge patch.
func (c *Client) Patch(path string, patch any) error {
	return c.call(http.MethodPatch, path, "application/strategic-merge-patch+json", patch, nil)
}

func (c *Client) list(path, selector string, more ...string) ([]Object, error) {
	query := url.Values{"labelSelector": {selector}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	var found struct {
		Items []Object `json:"items"`
	}
	return found.Items, c.call(http.MethodGet, path+"?"+query.Encode(), "", nil, &found)
}

func (c *Client) call(method, path, contentType string, body, into any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, c.Base+path, content)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
