// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command device-plugin offers the GPU to the kubelet through its device plugin API (v1beta1), as long as the driver is loaded and ready.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	gpu      = "GPU-6c1a0d4e-0000-4000-8000-000000000000"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	module, ready, devices string
	poll                   time.Duration
}

// available says whether the GPU can be used: the module is in the kernel, and the driver's validation has passed.
func (p *plugin) available() bool {
	for _, path := range []string{p.module, p.ready, filepath.Join(p.devices, "nvidia0")} {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch sends the device list now and whenever it changes.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	ticker := time.NewTicker(p.poll)
	defer ticker.Stop()
	for sent, known := false, false; ; {
		if available := p.available(); !known || available != sent {
			answer := &api.ListAndWatchResponse{}
			if available {
				answer.Devices = []*api.Device{{ID: gpu, Health: api.Healthy}}
			}
			log.Printf("%s: %d", resource, len(answer.Devices))
			if err := stream.Send(answer); err != nil {
				return err
			}
			sent, known = available, true
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Allocate gives a container the device files of the driver's own root, where the driver container made them.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		given := &api.ContainerAllocateResponse{Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}}
		for _, name := range []string{"nvidiactl", "nvidia0", "nvidia-uvm", "nvidia-uvm-tools"} {
			given.Devices = append(given.Devices, &api.DeviceSpec{HostPath: filepath.Join(p.devices, name), ContainerPath: "/dev/" + name, Permissions: "rw"})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

// serve listens on the plugin's socket and registers it; the returned server is stopped by the caller.
func (p *plugin) serve(folder string) (*grpc.Server, error) {
	socket := filepath.Join(folder, "nvidia-gpu.sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Fatal(err)
		}
	}()
	connection, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		server.Stop()
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource, Options: &api.DevicePluginOptions{}}
	if _, err := api.NewRegistrationClient(connection).Register(ctx, request); err != nil {
		server.Stop()
		return nil, err
	}
	log.Printf("registered %s", resource)
	return server, nil
}

// inode tells one kubelet's socket from its successor's.
func inode(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func main() {
	folder := flag.String("plugins", api.DevicePluginPath, "folder with the kubelet's socket")
	p := &plugin{}
	flag.StringVar(&p.module, "module", "/sys/module/nvidia", "exists while the driver is loaded")
	flag.StringVar(&p.ready, "ready", "/run/nvidia/validations/driver-ready", "exists once the driver is validated")
	flag.StringVar(&p.devices, "devices", "/run/nvidia/driver/dev", "folder with the device files, as the host sees it")
	flag.DurationVar(&p.poll, "poll", 2*time.Second, "how often the driver is looked at")
	flag.Parse()

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	kubelet := filepath.Join(*folder, "kubelet.sock")
	for {
		known := inode(kubelet)
		server, err := p.serve(*folder)
		if err != nil {
			log.Fatal(err)
		}
		for inode(kubelet) == known {
			select {
			case <-ended:
				server.Stop()
				return
			case <-time.After(p.poll):
			}
		}
		log.Print("the kubelet has started anew: registering again")
		server.Stop()
	}
}
