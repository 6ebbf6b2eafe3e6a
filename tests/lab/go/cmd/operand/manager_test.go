// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpunode.hygiene/lab/internal/kube"
)

func TestLabelsArePausedAndUnpausedAsTheDriverManagerDoes(t *testing.T) {
	for _, row := range []struct{ found, paused, unpaused string }{
		{"", "", ""},
		{"false", "false", "false"},
		{"true", "paused-for-driver-upgrade", "true"},
		{"paused-for-driver-upgrade", "paused-for-driver-upgrade", "true"},
		{"paused-for-mig-change", "paused-for-mig-change_paused-for-driver-upgrade", "paused-for-mig-change"},
		{"paused-for-mig-change_paused-for-driver-upgrade", "paused-for-mig-change_paused-for-driver-upgrade", "paused-for-mig-change"},
	} {
		if got := paused(row.found); got != row.paused {
			t.Errorf("paused(%q) is %q, not %q", row.found, got, row.paused)
		}
		if got := unpaused(row.found); got != row.unpaused {
			t.Errorf("unpaused(%q) is %q, not %q", row.found, got, row.unpaused)
		}
	}
}

func TestMountsBelowAFolderComeDeepestFirstAndNoOthers(t *testing.T) {
	mountinfo := filepath.Join(t.TempDir(), "mountinfo")
	text := "22 1 0:21 / /run rw - tmpfs tmpfs rw\n" +
		"30 22 0:30 / /run/nvidia/driver rw - overlay overlay rw\n" +
		"31 30 0:31 / /run/nvidia/driver/dev rw - tmpfs tmpfs rw\n" +
		"32 22 0:32 / /run/nvidia/driver2 rw - tmpfs tmpfs rw\n"
	if err := os.WriteFile(mountinfo, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := mountsBelow(mountinfo, "/run/nvidia/driver")
	if err != nil || !slices.Equal(found, []string{"/run/nvidia/driver/dev", "/run/nvidia/driver"}) {
		t.Fatalf("%v, %v", found, err)
	}
}

func TestTheOperatorHonoursLabelsThatAreThere(t *testing.T) {
	labels, annotations := missingMarks(kube.Meta{
		Labels:      map[string]string{"nvidia.com/gpu.present": "true", deployPrefix + "driver": "false", deployPrefix + "dcgm": "", upgradeState: "upgrade-failed"},
		Annotations: map[string]string{},
	})
	for _, name := range []string{"nvidia.com/gpu.present", deployPrefix + "driver", deployPrefix + "dcgm", upgradeState} {
		if _, set := labels[name]; set {
			t.Errorf("%s is set anew", name)
		}
	}
	if labels[deployPrefix+"device-plugin"] != "true" || annotations[autoUpgrade] != "true" {
		t.Errorf("labels %v, annotations %v", labels, annotations)
	}
}

func TestTheDriverImageFollowsTheNodesOsLabels(t *testing.T) {
	var policy clusterPolicy
	policy.Spec.Driver.Repository, policy.Spec.Driver.Image, policy.Spec.Driver.Version = "nvcr.io/nvidia", "driver", "580.126.20"
	labels := map[string]string{featurePrefix + "system-os_release.ID": "ubuntu", featurePrefix + "system-os_release.VERSION_ID": "24.04"}
	if got := driverImage(policy, labels); got != "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04" {
		t.Fatal(got)
	}
}

func TestFeaturesComeFromOsReleaseAndTheRunningKernel(t *testing.T) {
	osRelease := filepath.Join(t.TempDir(), "os-release")
	if err := os.WriteFile(osRelease, []byte("NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_ID=\"24.04\"\nID_LIKE=debian\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	labels, err := features(osRelease)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"system-os_release.ID": "ubuntu", "system-os_release.VERSION_ID": "24.04", "system-os_release.VERSION_ID.major": "24",
		"kernel-version.full": string(kernel[:len(kernel)-1]), "pci-10de.present": "true",
	} {
		if labels[featurePrefix+name] != value {
			t.Errorf("%s is %q, not %q", name, labels[featurePrefix+name], value)
		}
	}
	if _, set := labels[featurePrefix+"system-os_release.ID_LIKE"]; set {
		t.Error("ID_LIKE is published")
	}
}
