/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_admin: `firn store delete|export|import`: of a running server, or of a directory that no
 * server has open.
 *
 * Private to cli/. argv[0] is the verb below `store`; they return the exit code.
 */
#pragma once

int cli_store_delete(int argc, char **argv);
int cli_store_export(int argc, char **argv);
int cli_store_import(int argc, char **argv);
