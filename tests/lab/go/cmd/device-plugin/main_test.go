// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type kubelet struct {
	api.UnimplementedRegistrationServer
	requests chan *api.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.requests <- request
	return &api.Empty{}, nil
}

func startKubelet(t *testing.T, folder string) *kubelet {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(folder, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{requests: make(chan *api.RegisterRequest, 4)}
	server := grpc.NewServer()
	api.RegisterRegistrationServer(server, k)
	go server.Serve(listener) //nolint:errcheck // ends with the test
	t.Cleanup(server.Stop)
	return k
}

func newPlugin(t *testing.T) (*plugin, string) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &plugin{module: filepath.Join(root, "module"), ready: filepath.Join(root, "driver-ready"), devices: filepath.Join(root, "dev"), poll: 10 * time.Millisecond}, root
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, socket string) api.DevicePluginClient {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return api.NewDevicePluginClient(connection)
}

func TestItRegistersTheResourceUnderItsSocketsName(t *testing.T) {
	p, root := newPlugin(t)
	k := startKubelet(t, root)
	server, err := p.serve(root)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	request := <-k.requests
	if request.ResourceName != "nvidia.com/gpu" || request.Endpoint != "nvidia-gpu.sock" || request.Version != "v1beta1" {
		t.Fatalf("registered %v", request)
	}
}

func TestTheGpuIsOfferedOnlyWhileTheDriverIsLoadedAndReady(t *testing.T) {
	p, root := newPlugin(t)
	startKubelet(t, root)
	server, err := p.serve(root)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := connect(t, filepath.Join(root, "nvidia-gpu.sock")).ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(count int) {
		t.Helper()
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Devices) != count {
			t.Fatalf("%d devices, not %d", len(answer.Devices), count)
		}
	}
	expect(0)
	touch(t, p.module)
	touch(t, p.ready)
	touch(t, filepath.Join(p.devices, "nvidia0"))
	expect(1)
	if err := os.Remove(p.module); err != nil {
		t.Fatal(err)
	}
	expect(0)
}

func TestAContainerGetsTheDriversDeviceFiles(t *testing.T) {
	p, _ := newPlugin(t)
	answer, err := p.Allocate(context.Background(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{gpu}}}})
	if err != nil {
		t.Fatal(err)
	}
	given := answer.ContainerResponses[0]
	if given.Envs["NVIDIA_VISIBLE_DEVICES"] != gpu {
		t.Fatalf("environment %v", given.Envs)
	}
	found := map[string]string{}
	for _, device := range given.Devices {
		found[device.ContainerPath] = device.HostPath
	}
	for _, name := range []string{"nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"} {
		if found["/dev/"+name] != filepath.Join(p.devices, name) {
			t.Fatalf("devices %v", found)
		}
	}
}
