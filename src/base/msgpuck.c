/* Defines the tables and functions of msgpuck.h. Debian's libmsgpuck.a cannot be linked into a shared
   library, because its code is not position-independent. */
#define MP_SOURCE 1
#include <msgpuck.h>
