// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"gpunode.hygiene/lab/internal/kube"
)

const (
	deployPrefix = "nvidia.com/gpu.deploy."
	autoUpgrade  = "nvidia.com/gpu-driver-upgrade-enabled"
	upgradeState = "nvidia.com/gpu-driver-upgrade-state"
	driverSet    = "nvidia-driver-daemonset"
)

var containerOperands = []string{
	"driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter", "node-status-exporter", "operator-validator",
}

type clusterPolicy struct {
	Spec struct {
		Driver struct {
			Repository string `json:"repository"`
			Image      string `json:"image"`
			Version    string `json:"version"`
		} `json:"driver"`
	} `json:"spec"`
}

type daemonSet struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name  string `json:"name"`
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// gpuOperator does what the operator does to Nodes and to the driver's image: it labels GPU nodes, honouring values that are there, and asks for the
// image of the first GPU node's OS.
func gpuOperator(_ []string) error {
	client, err := kube.InCluster()
	if err != nil {
		return err
	}
	for ; ; time.Sleep(10 * time.Second) {
		if err := reconcile(client, os.Getenv("OPERATOR_NAMESPACE")); err != nil {
			log.Printf("reconcile: %v", err)
		}
	}
}

func reconcile(client *kube.Client, namespace string) error {
	nodes, err := client.Nodes(featurePrefix + "pci-10de.present=true")
	if err != nil || len(nodes) == 0 {
		return err
	}
	for _, node := range nodes {
		labels, annotations := missingMarks(node.Metadata)
		if len(labels)+len(annotations) == 0 {
			continue
		}
		if err := client.PatchNode(node.Metadata.Name, labels, annotations); err != nil {
			return err
		}
		log.Printf("labelled node %s: %v", node.Metadata.Name, labels)
	}
	var policy clusterPolicy
	if err := client.Get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy", &policy); err != nil {
		return err
	}
	path := "/apis/apps/v1/namespaces/" + namespace + "/daemonsets/" + driverSet
	var current daemonSet
	if err := client.Get(path, &current); err != nil {
		return err
	}
	wanted := driverImage(policy, nodes[0].Metadata.Labels)
	for _, container := range current.Spec.Template.Spec.Containers {
		if container.Name != "nvidia-driver-ctr" || container.Image == wanted {
			continue
		}
		log.Printf("the driver's image changes from %s to %s", container.Image, wanted)
		image := map[string]any{"containers": []any{map[string]any{"name": container.Name, "image": wanted}}}
		return client.Patch(path, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": image}}})
	}
	return nil
}

func missingMarks(meta kube.Meta) (labels, annotations map[string]any) {
	labels, annotations = map[string]any{}, map[string]any{}
	if meta.Labels["nvidia.com/gpu.present"] != "true" {
		labels["nvidia.com/gpu.present"] = "true"
	}
	for _, operand := range containerOperands {
		if _, there := meta.Labels[deployPrefix+operand]; !there {
			labels[deployPrefix+operand] = "true"
		}
	}
	if _, there := meta.Labels[upgradeState]; !there {
		labels[upgradeState] = "upgrade-done"
	}
	if meta.Annotations[autoUpgrade] != "true" {
		annotations[autoUpgrade] = "true"
	}
	return labels, annotations
}

func driverImage(policy clusterPolicy, labels map[string]string) string {
	driver := policy.Spec.Driver
	system := labels[featurePrefix+"system-os_release.ID"] + labels[featurePrefix+"system-os_release.VERSION_ID"]
	return fmt.Sprintf("%s/%s:%s-%s", driver.Repository, driver.Image, driver.Version, system)
}
