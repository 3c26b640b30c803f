package pythoncall

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
)

// stdlib are the modules of Python's standard library that every version from 3.10 to
// 3.14 has on Linux and macOS, by sys.stdlib_module_names. Those that distributions
// package separately, such as tkinter, are left out.
var stdlib = content.Words(`
		abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile
		calendar cmath cmd code codecs codeop collections colorsys compileall concurrent
		configparser contextlib contextvars copy copyreg csv ctypes curses dataclasses datetime
		dbm decimal difflib dis doctest email encodings enum errno faulthandler fcntl filecmp
		fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob
		graphlib grp gzip hashlib heapq hmac html http imaplib importlib inspect io ipaddress
		itertools json keyword linecache locale logging lzma mailbox marshal math mimetypes mmap
		modulefinder multiprocessing netrc ntpath numbers opcode operator optparse os pathlib pdb
		pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint profile pstats
		pty pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib resource
		rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib
		socket socketserver sqlite3 ssl stat statistics string stringprep struct subprocess
		symtable sys sysconfig syslog tabnanny tarfile tempfile termios textwrap threading time
		timeit token tokenize trace traceback tracemalloc tty types typing unicodedata unittest
		urllib uuid venv warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile
		zipimport zlib zoneinfo`)

// comesWithPython reports whether a module, such as os.path, is part of every
// supported Python, so that nothing needs to be installed for it.
func comesWithPython(module string) bool {
	top, _, _ := strings.Cut(module, ".")
	return stdlib[top]
}
