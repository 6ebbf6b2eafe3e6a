// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gpunode.hygiene/lab/internal/kube"
)

const (
	runFolder     = "/run/nvidia"
	pausedValue   = "paused-for-driver-upgrade"
	evictionLimit = 5 * time.Minute
)

// Operands in the order they are waited for: label suffix, then the pods' `app`.
var pausedOperands = [][2]string{
	{"operator-validator", "nvidia-operator-validator"},
	{"container-toolkit", "nvidia-container-toolkit-daemonset"},
	{"device-plugin", "nvidia-device-plugin-daemonset"},
	{"gpu-feature-discovery", "gpu-feature-discovery"},
	{"dcgm-exporter", "nvidia-dcgm-exporter"},
	{"dcgm", "nvidia-dcgm"},
}

// Keys that the manager patches although no pod is waited for.
var stampedOperands = []string{"nvsm", "sandbox-validator", "sandbox-device-plugin", "vgpu-device-manager", "mig-manager"}

var unloadOrder = []string{"nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia_fs", "nvidia_vgpu_vfio", "gdrdrv", "nvidia"}

// driverManager is k8s-driver-manager v0.11's `uninstall_driver` on a node that the upgrade controller looks after (it then neither cordons nor evicts).
func driverManager(arguments []string) error {
	if len(arguments) != 1 || arguments[0] != "uninstall_driver" {
		return fmt.Errorf("driver-manager knows uninstall_driver only, not %q", arguments)
	}
	client, err := kube.InCluster()
	if err != nil {
		return err
	}
	manager := manager{client: client, node: os.Getenv("NODE_NAME"), namespace: os.Getenv("OPERATOR_NAMESPACE")}
	if exec.Command("chroot", "/host", "nvidia-smi").Run() == nil {
		log.Print("NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver on the node")
		return errors.Join(client.PatchNode(manager.node, map[string]any{deployPrefix + "driver": "pre-installed"}, nil), errors.New("driver is pre-installed on host"))
	}
	node, err := client.Node(manager.node)
	if err != nil {
		return err
	}
	if node.Metadata.Annotations[autoUpgrade] != "true" {
		return fmt.Errorf("node %s has no annotation %s=true: eviction by the driver manager itself is not part of this stand-in", manager.node, autoUpgrade)
	}
	manager.found = node.Metadata.Labels
	return manager.uninstall()
}

type manager struct {
	client          *kube.Client
	node, namespace string
	found           map[string]string
}

func (m manager) uninstall() error {
	log.Print("Current value of the deployment labels: ", deployLabels(m.found))
	if err := m.evictOperands(); err != nil {
		log.Printf("Failed to evict GPU operator components, attempting cleanup: %v", err)
		return errors.Join(err, m.reschedule())
	}
	if skip() {
		if err := unmountRootfs(); err != nil {
			return err
		}
		return errors.Join(removePidFile(), m.reschedule())
	}
	if loaded("nvidia") {
		if err := errors.Join(unload(), unmountRootfs(), removePidFile()); err != nil {
			log.Print("Failed to uninstall nvidia driver components")
			log.Printf("Cleanup could not automatically proceed on node %s", m.node)
			return errors.Join(err, m.reschedule())
		}
	}
	return m.reschedule()
}

func (m manager) evictOperands() error {
	log.Print("Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels")
	if err := m.client.PatchNode(m.node, m.labels(paused), nil); err != nil {
		return err
	}
	for _, operand := range pausedOperands {
		log.Printf("Waiting for %s to shutdown", operand[1])
		for deadline := time.Now().Add(evictionLimit); ; time.Sleep(5 * time.Second) {
			pods, err := m.client.Pods(m.namespace, "app="+operand[1], m.node)
			if err != nil {
				return err
			}
			if len(pods) == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("timed out waiting for %s to shutdown", operand[1])
			}
		}
	}
	return nil
}

// reschedule un-pauses from the copy of the labels that was made at the start, as the real one does.
func (m manager) reschedule() error {
	log.Print("Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels")
	return m.client.PatchNode(m.node, m.labels(unpaused), nil)
}

func (m manager) labels(change func(string) string) map[string]any {
	labels := map[string]any{}
	for _, operand := range pausedOperands {
		labels[deployPrefix+operand[0]] = change(m.found[deployPrefix+operand[0]])
	}
	for _, operand := range stampedOperands {
		labels[deployPrefix+operand] = change(m.found[deployPrefix+operand])
	}
	return labels
}

func paused(value string) string {
	switch {
	case value == "" || value == "false" || strings.Contains(value, pausedValue):
		return value
	case value == "true":
		return pausedValue
	default:
		return value + "_" + pausedValue
	}
}

func unpaused(value string) string {
	switch value {
	case "", "false", "true":
		return value
	case pausedValue:
		return "true"
	default:
		return strings.Trim(strings.ReplaceAll(value, pausedValue, ""), "_")
	}
}

func skip() bool {
	if os.Getenv("FORCE_REINSTALL") == "true" || !loaded("nvidia") {
		return false
	}
	log.Print("Checking if the currently loaded NVIDIA driver version and configuration matches the desired state...")
	state, err := os.ReadFile(runFolder + "/nvidia-driver.state")
	if err != nil {
		log.Print("No previous driver configuration found")
		return false
	}
	digest := os.Getenv("DRIVER_CONFIG_DIGEST")
	if digest == "" || strings.TrimSpace(string(state)) != digest {
		return false
	}
	log.Print("The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation of the driver in an attempt to not disrupt running workloads")
	return true
}

func loaded(module string) bool {
	_, err := os.Stat("/sys/module/" + module + "/refcnt")
	return err == nil
}

// unload goes on after a module that stays, as the real one does; nothing is checked before.
func unload() error {
	var failed []error
	for _, module := range unloadOrder {
		if loaded(module) {
			if err := unix.DeleteModule(module, 0); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", module, err))
			}
		}
	}
	if len(failed) > 0 {
		log.Print("Could not unload NVIDIA driver kernel modules, driver is in use")
	}
	return errors.Join(failed...)
}

func unmountRootfs() error {
	return recursiveUnmount("/proc/self/mountinfo", runFolder+"/driver")
}

// recursiveUnmount detaches everything mounted at or below a folder, the deepest first.
func recursiveUnmount(mountinfo, folder string) error {
	points, err := mountsBelow(mountinfo, folder)
	if err != nil {
		return err
	}
	for _, point := range points {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("umount %s: %w", point, err)
		}
	}
	return nil
}

func mountsBelow(mountinfo, folder string) ([]string, error) {
	text, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil, err
	}
	var points []string
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && (fields[4] == folder || strings.HasPrefix(fields[4], folder+"/")) {
			points = append(points, fields[4])
		}
	}
	sort.SliceStable(points, func(i, j int) bool { return len(points[i]) > len(points[j]) })
	return points, nil
}

func removePidFile() error {
	if err := os.Remove(runFolder + "/nvidia-driver.pid"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func deployLabels(labels map[string]string) []string {
	var found []string
	for name, value := range labels {
		if strings.HasPrefix(name, deployPrefix) {
			found = append(found, strings.TrimPrefix(name, deployPrefix)+"="+value)
		}
	}
	sort.Strings(found)
	return found
}
