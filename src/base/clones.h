// Compiles a function for several instruction sets; the loader selects one at program start. Not active under
// sanitizers, because they are initialized after the loader selects.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OCTAVO_SANITIZED 1
#elif defined(__has_feature)
#define OCTAVO_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define OCTAVO_SANITIZED 0
#endif
#if defined(__x86_64__) && !OCTAVO_SANITIZED
#define OCTAVO_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OCTAVO_CLONES
#endif
