/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: the first process of the machine that test_kernels.py starts: mounts what programs expect,
 * runs the lines of /commands one after the other, says how each ended, and turns the machine off.
 * Linked statically.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 32

static void run(char *line)
{
	char *argv[ARGS_MAX + 1] = { NULL };
	int n = 0, status = 0;
	for (char *word = strtok(line, " \n"); word && n < ARGS_MAX; word = strtok(NULL, " \n"))
		argv[n++] = word;
	if (n == 0)
		return;
	printf("init: begin %s\n", argv[0]);
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	/* Orphans of the programs come here too. */
	for (pid_t ended = 0; pid > 0 && ended != pid;)
		ended = waitpid(-1, &status, 0);
	printf("init: end %s %d\n", argv[0],
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	(void)fflush(stdout);
}

int main(void)
{
	static const struct {
		const char *at, *type;
	} mounts[] = { { "/proc", "proc" }, { "/sys", "sysfs" }, { "/dev", "devtmpfs" },
		{ "/tmp", "tmpfs" }, { "/sys/fs/cgroup", "cgroup2" } };
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		(void)mkdir(mounts[i].at, 0755);
		if (mount("none", mounts[i].at, mounts[i].type, 0, NULL) != 0)
			perror(mounts[i].at);
	}
	for (int fd = 0; fd < 3; fd++) {
		int console = open("/dev/console", O_RDWR);
		if (console >= 0 && console != fd) {
			(void)dup2(console, fd);
			(void)close(console);
		}
	}
	struct utsname u;
	(void)uname(&u);
	printf("init: kernel %s\n", u.release);
	char line[512];
	FILE *commands = fopen("/commands", "r");
	while (commands && fgets(line, sizeof(line), commands))
		run(line);
	printf("init: done\n");
	(void)fflush(stdout);
	sync();
	(void)reboot(RB_POWER_OFF);
	return 1;
}
