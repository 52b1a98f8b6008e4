// Hot loops are compiled for plain x86-64 and for x86-64-v3; the loader picks one. With -ffp-contract=off both give
// the same bits. Sanitizers cannot start with ifuncs, so they get the plain version.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define REGATTA_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define REGATTA_MULTIVERSION
#endif
