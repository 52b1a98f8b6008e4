// OpenSSL's way to read and write bytes. Thread-safety: belongs to one thread.
#pragma once

#include <openssl/bio.h>

#include <memory>
#include <string>

#include "wire/freed.h"

namespace regatta::wire {

using Bio = std::unique_ptr<BIO, Freed<&BIO_free_all>>;

// Reads `text`, which outlives it.
inline Bio Reading(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

}  // namespace regatta::wire
