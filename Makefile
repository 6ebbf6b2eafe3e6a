# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL := /bin/bash

.PHONY: demo test test-quick test-full lint clean

demo:
	python=$$(tests/tools/setup.sh full) && $$python tests/tools/demo.py

test:
	python=$$(tests/tools/setup.sh full) && $$python tests/tools/run_tests.py test

test-quick:
	python=$$(tests/tools/setup.sh quick) && $$python tests/tools/run_tests.py quick

test-full:
	python=$$(tests/tools/setup.sh full) && $$python tests/tools/run_tests.py full

lint:
	python=$$(tests/tools/setup.sh quick) && $$python tests/tools/run_tests.py lint

clean:
	tests/tools/clean.sh
