// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bufio"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	"gpunode.hygiene/lab/internal/kube"
)

const featurePrefix = "feature.node.kubernetes.io/"

// nfdWorker publishes what Node Feature Discovery reads from the live node. NFD's own interval is 60 s; NFD_SLEEP_INTERVAL (a Go duration) shortens it.
// The GPU's PCI vendor is a given: a virtual machine cannot have one.
func nfdWorker(_ []string) error {
	client, err := kube.InCluster()
	if err != nil {
		return err
	}
	interval, err := time.ParseDuration(os.Getenv("NFD_SLEEP_INTERVAL"))
	if err != nil {
		return err
	}
	for published := ""; ; time.Sleep(interval) {
		labels, err := features("/host-etc/os-release")
		if err != nil {
			return err
		}
		if err := client.PatchNode(os.Getenv("NODE_NAME"), labels, nil); err != nil {
			log.Printf("not published: %v", err)
			continue
		}
		if kernel := labels[featurePrefix+"kernel-version.full"].(string); kernel != published {
			log.Printf("published kernel-version.full=%s", kernel)
			published = kernel
		}
	}
}

func features(osRelease string) (map[string]any, error) {
	var names syscall.Utsname
	if err := syscall.Uname(&names); err != nil {
		return nil, err
	}
	var kernel strings.Builder
	for _, character := range names.Release {
		if character == 0 {
			break
		}
		kernel.WriteByte(byte(character))
	}
	labels := map[string]any{
		featurePrefix + "kernel-version.full": kernel.String(),
		featurePrefix + "pci-10de.present":    "true",
	}
	parts := strings.FieldsFunc(kernel.String(), func(r rune) bool { return r == '.' || r == '-' })
	for index, name := range []string{"major", "minor", "revision"} {
		if index < len(parts) {
			labels[featurePrefix+"kernel-version."+name] = parts[index]
		}
	}
	file, err := os.Open(osRelease)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		key, value, found := strings.Cut(scanner.Text(), "=")
		value = strings.Trim(value, `"'`)
		if found && (key == "ID" || key == "VERSION_ID") {
			labels[featurePrefix+"system-os_release."+key] = value
		}
		if key == "VERSION_ID" {
			major, minor, hasMinor := strings.Cut(value, ".")
			labels[featurePrefix+"system-os_release.VERSION_ID.major"] = major
			if hasMinor {
				labels[featurePrefix+"system-os_release.VERSION_ID.minor"] = minor
			}
		}
	}
	return labels, scanner.Err()
}
