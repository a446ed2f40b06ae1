"""System calls that a sandbox's processes may make; every other one fails with EPERM.

Named after what programs need them for. What is missing is missing on purpose: namespaces, mounts, kernel modules,
keys, other processes' memory (ptrace, process_vm_*), bpf, io_uring, userfaultfd, perf events, clocks that can be set,
swap, and what outlives a process without being a file (System V IPC, POSIX message queues).
"""

import atexit
import functools
import json
import os
import tempfile

_FILES = """
access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr
flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64
futimesat getcwd getdents getdents64 getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl
lchown lchown32 lgetxattr link linkat listxattr llistxattr lremovexattr lseek _llseek lsetxattr lstat lstat64 mkdir
mkdirat mknod mknodat newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead
readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile sendfile64 setxattr splice stat stat64
statfs statfs64 statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64 umask unlink unlinkat
utime utimensat utimensat_time64 utimes vmsplice write writev
"""
_MEMORY = """
brk get_mempolicy madvise memfd_create mincore mlock mlock2 mlockall mmap mmap2 mprotect mremap msync munlock
munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
"""
_PROCESSES = """
arch_prctl capget capset execve execveat exit exit_group fork get_robust_list get_thread_area getcpu getegid getegid32
geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getpriority getresgid
getresgid32 getresuid getresuid32 getrlimit getrusage getsid gettid getuid getuid32 ioprio_get ioprio_set kill
membarrier pidfd_open pidfd_send_signal prctl prlimit64 rseq sched_get_priority_max sched_get_priority_min
sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity
sched_setattr sched_setparam sched_setscheduler sched_yield set_robust_list set_thread_area set_tid_address setfsgid
setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority setregid setregid32
setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setuid setuid32 tgkill times tkill
ugetrlimit uname vfork wait4 waitid waitpid
"""
_SIGNALS_AND_TIME = """
alarm clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
futex futex_time64 futex_waitv getitimer gettimeofday nanosleep pause poll ppoll ppoll_time64 pselect6 pselect6_time64
restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_sigtimedwait_time64 rt_tgsigqueueinfo select _newselect sigaltstack signalfd signalfd4 sigreturn time timer_create
timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create
timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64
"""
_SOCKETS_AND_THE_REST = """
accept accept4 bind connect getpeername getsockname getsockopt listen pipe pipe2 recvfrom recvmmsg recvmmsg_time64
recvmsg sendmmsg sendmsg sendto setsockopt shutdown socketpair
getrandom sysinfo
landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp
"""
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME
_ENOSYS = 38


def allowed() -> list[str]:
    """The names of system calls that are allowed with any arguments, for all architectures together."""
    return sorted(" ".join((_FILES, _MEMORY, _PROCESSES, _SIGNALS_AND_TIME, _SOCKETS_AND_THE_REST)).split())


def profile() -> str:
    """The profile in the engines' JSON. Names that an architecture lacks are skipped by the runtime."""
    socket_rules = [
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}]}
        for family in _FAMILIES.values()
    ]
    threads_only = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    rules = [
        {"names": allowed(), "action": "SCMP_ACT_ALLOW"},
        *socket_rules,
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [threads_only]},
        # Its flags are out of a filter's reach; if it hears that there is none, the C library takes clone.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    # One architecture each and none below it: 32-bit calls have other numbers, and no use here.
    architectures = [
        {"architecture": name, "subArchitectures": []} for name in ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "archMap": architectures, "syscalls": rules})


def option(podman: bool) -> str:
    """The security option that sets the profile: Docker takes its text, Podman the path of a file on its machine."""
    return f"seccomp={_file(os.getpid()) if podman else profile()}"


@functools.cache
def _file(pid: int) -> str:
    handle, path = tempfile.mkstemp(prefix="manyturn-seccomp-", suffix=".json")
    with os.fdopen(handle, "w") as file:
        file.write(profile())
    atexit.register(lambda: os.unlink(path) if os.getpid() == pid else None)
    return path
