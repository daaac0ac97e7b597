/** The numbers on arm64 of system calls that the tests name by those on x64; the others exist on both, with one number. */
const ON_ARM64: Record<number, number | null> = {
  2: null, // open
  9: 222, // mmap
  10: 226, // mprotect
  16: 29, // ioctl
  22: null, // pipe
  29: 194, // shmget
  32: 23, // dup
  33: null, // dup2
  41: 198, // socket
  42: 203, // connect
  44: 206, // sendto
  46: 211, // sendmsg
  49: 200, // bind
  53: 199, // socketpair
  56: 220, // clone
  57: null, // fork
  58: null, // vfork
  59: 221, // execve
  62: 129, // kill
  85: null, // creat
  101: 117, // ptrace
  105: 146, // setuid
  129: 138, // rt_sigqueueinfo
  135: 92, // personality
  155: 41, // pivot_root
  157: 167, // prctl
  160: 164, // setrlimit
  161: 51, // chroot
  165: 40, // mount
  175: 105, // init_module
  200: 130, // tkill
  213: null, // epoll_create
  231: 94, // exit_group
  234: 131, // tgkill
  248: 217, // add_key
  250: 219, // keyctl
  253: null, // inotify_init
  257: 56, // openat
  272: 97, // unshare
  290: 19, // eventfd2
  291: 20, // epoll_create1
  293: 59, // pipe2
  294: 26, // inotify_init1
  298: 241, // perf_event_open
  302: 261, // prlimit
  303: 264, // name_to_handle_at
  304: 265, // open_by_handle_at
  308: 268, // setns
  310: 270, // process_vm_readv
  311: 271, // process_vm_writev
  317: 277, // seccomp
  319: 279, // memfd_create
  321: 280, // bpf
  322: 281, // execveat
  323: 282, // userfaultfd
};

/** The calls that this processor has, each as the text of its arguments, of which the first is its number on x64. */
export const existing = (calls: readonly string[]): string[] =>
  calls.flatMap((call) => {
    const [, number = "", rest = ""] = /^(\d+)(.*)$/.exec(call) ?? [];
    const here = process.arch === "arm64" && Number(number) in ON_ARM64 ? ON_ARM64[Number(number)] : Number(number);
    return here === null || here === undefined ? [] : [`${here}${rest}`];
  });
