// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// hold keeps device files open, and maps those that can be mapped, until a signal ends it: what a monitor or daemon does to a driver.
// Arguments: [--pid-file=FILE] DEVICE...
func hold(arguments []string) error {
	for _, argument := range arguments {
		if path, isPidFile := strings.CutPrefix(argument, "--pid-file="); isPidFile {
			if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644); err != nil {
				return err
			}
			defer os.Remove(path)
			continue
		}
		device, err := os.OpenFile(argument, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer device.Close()
		if memory, err := syscall.Mmap(int(device.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED); err == nil {
			defer syscall.Munmap(memory) //nolint:errcheck // the process ends
		}
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	return nil
}

// lock is flock(1) for what busybox does not have: `flock -n FD` locks an inherited file, and the caller keeps the lock.
func lock(arguments []string) error {
	if len(arguments) != 2 || arguments[0] != "-n" {
		return fmt.Errorf("usage: flock -n FD, not %q", arguments)
	}
	descriptor, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	err = syscall.Flock(descriptor, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		os.Exit(1) // the caller says what that means
	}
	return err
}
