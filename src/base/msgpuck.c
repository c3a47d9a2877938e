/* The tables and functions of msgpuck.h: Debian's libmsgpuck.a has them as code that no shared library can take. */
#define MP_SOURCE 1
#include <msgpuck.h>
