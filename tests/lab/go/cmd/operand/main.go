// Copyright (c) 2026 gpunode.hygiene contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command operand stands in for the programs around a GPU driver; the name it is called by, or its first argument, says which.
package main

import (
	"log"
	"os"
	"path/filepath"
)

var roles = map[string]func(arguments []string) error{
	"nfd-worker":          nfdWorker,
	"driver-manager":      driverManager,
	"gpu-operator":        gpuOperator,
	"flock":               lock,
	"dcgm-exporter":       hold,
	"trainer":             hold,
	"nvidia-persistenced": hold,
}

func main() {
	log.SetFlags(log.Ltime)
	arguments := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	for len(arguments) > 0 {
		if role, known := roles[arguments[0]]; known {
			if err := role(arguments[1:]); err != nil {
				log.Fatal(err)
			}
			return
		}
		arguments = arguments[1:]
	}
	log.Fatalf("%q names no stand-in", os.Args)
}
