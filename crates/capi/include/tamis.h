/* Tamis: canonical keys of URLs and their fingerprints.
 *
 * Generated from crates/capi; TAMIS_BLESS=1 cargo test -p tamis-capi writes it anew.
 *
 * Text is bytes with a length, without NUL at the end. Numbers of statuses are never used again. Under the
 * profiles strict, default and classic without rule sets, a key of a URL with an ASCII host is made without
 * allocating once the buffers of the handle have grown. What goes wrong inside comes back as a status; only
 * then may a message appear on stderr. A handle belongs to one thread at a time.
 */

#ifndef TAMIS_H
#define TAMIS_H

#include <stddef.h>
#include <stdint.h>

/* What tamis_abi_version() must return. */
#define TAMIS_ABI_VERSION 1

/*
 What a call came to. Below 16: how it was called. From 16: why a URL has no key.

 Numbers are never used again. Later versions may know more of them.
 */
enum tamis_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   It worked.
   */
  TAMIS_STATUS_OK = 0,
  /*
   A pointer is NULL that must not be.
   */
  TAMIS_STATUS_NULL = 1,
  /*
   A fault of Tamis. The handle, if there was one, answers nothing else from now on: free it.
   */
  TAMIS_STATUS_PANIC = 2,
  /*
   A length that no memory has.
   */
  TAMIS_STATUS_LENGTH = 3,
  /*
   The buffer has too little room; the length that is needed was written. What is in the buffer is as before.
   */
  TAMIS_STATUS_BUFFER_TOO_SMALL = 4,
  /*
   Another thread is in a call with this handle.
   */
  TAMIS_STATUS_BUSY = 5,
  /*
   No profile has this name.
   */
  TAMIS_STATUS_UNKNOWN_PROFILE = 6,
  /*
   A rule set is faulty, or two are of one name.
   */
  TAMIS_STATUS_RULE_SET = 7,
  /*
   A reason that this version of the header has no number for.
   */
  TAMIS_STATUS_REJECT_OTHER = 16,
  /*
   The URL is too long.
   */
  TAMIS_STATUS_REJECT_TOO_LONG = 17,
  /*
   The URL has no scheme.
   */
  TAMIS_STATUS_REJECT_NO_SCHEME = 18,
  /*
   The scheme of the URL names nothing with a host or path, as that of `mailto:`.
   */
  TAMIS_STATUS_REJECT_NOT_HIERARCHICAL = 19,
  /*
   The port is no number up to 65535.
   */
  TAMIS_STATUS_REJECT_PORT = 20,
  /*
   The host is empty.
   */
  TAMIS_STATUS_REJECT_HOST_EMPTY = 21,
  /*
   The host holds a character that no host may hold.
   */
  TAMIS_STATUS_REJECT_HOST_FORBIDDEN = 22,
  /*
   The host is no UTF-8.
   */
  TAMIS_STATUS_REJECT_HOST_NOT_UTF8 = 23,
  /*
   UTS 46 refuses the host.
   */
  TAMIS_STATUS_REJECT_HOST_IDNA = 24,
  /*
   The host ends in a number and is no IPv4 address.
   */
  TAMIS_STATUS_REJECT_HOST_IPV4 = 25,
  /*
   The host is in brackets and no IPv6 address.
   */
  TAMIS_STATUS_REJECT_HOST_IPV6 = 26,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tamis_status tamis_status;
#else
typedef int32_t tamis_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Makes keys under one profile. Opaque.

 It belongs to one thread at a time and may move between threads; give each thread its own. A call that
 comes while another is in progress returns `TAMIS_STATUS_BUSY`, without harm. `tamis_canon_free` alone
 must not run beside any other call with the handle.
 */
typedef struct tamis_canon tamis_canon;

/*
 Bytes of the caller. NULL with a length of 0 is empty.
 */
typedef struct {
  /*
   The first of them.
   */
  const uint8_t *data;
  /*
   How many.
   */
  size_t len;
} tamis_bytes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of this ABI: compare it with `TAMIS_ABI_VERSION` of the header before anything else.
 */
uint32_t tamis_abi_version(void);

/*
 A sentence in English about a status, also about a number that is none. Static, never NULL, ends in NUL.
 */
const char *tamis_status_text(int32_t status);

/*
 Makes a handle for the profile of a name: `default`, `strict`, `classic`, `w3lib`, `surt` or `crawler-commons`.

 `*handle` is the new handle, or NULL if there is none. Free it with `tamis_canon_free`.

 # Safety
 `profile` is readable for `profile_len` bytes; `handle` is writable.
 */
tamis_status tamis_canon_new(const char *profile,
                             size_t profile_len,
                             tamis_canon **handle);

/*
 As `tamis_canon_new`, with rule sets (JSON, see `docs/url-rules.md`), all of which take part in the keys.

 If a set is faulty (`TAMIS_STATUS_RULE_SET`), what is wrong is written to `message`, cut to
 `message_room`, with its length in `*message_len`. Without `message_len` nothing is written.

 # Safety
 `profile` is readable for `profile_len` bytes, `sets` for `set_count` sets, each of them for its length;
 `handle` is writable, `message` for `message_room` bytes; nothing that is written overlaps anything else.
 */
tamis_status tamis_canon_new_with_rules(const char *profile,
                                        size_t profile_len,
                                        const tamis_bytes *sets,
                                        size_t set_count,
                                        tamis_canon **handle,
                                        char *message,
                                        size_t message_room,
                                        size_t *message_len);

/*
 Frees a handle. NULL is fine; a handle that was freed is not.

 # Safety
 `handle` is NULL or one of `tamis_canon_new`, not freed before, with no call in progress.
 */
void tamis_canon_free(tamis_canon *handle);

/*
 The id of what makes the keys: profile, its version, rule sets. Keys of two ids are not to be compared.

 Written to `buffer`, without NUL, if `room` is enough; its length to `*length` in any case.

 # Safety
 `handle` is a handle; `buffer` is writable for `room` bytes, and `length` is writable.
 */
tamis_status tamis_canon_id(const tamis_canon *handle, char *buffer, size_t room, size_t *length);

/*
 The key of a URL: what to compare by. With rule sets, that is the key that they leave.

 Written to `buffer`, without NUL, if `room` is enough; its length to `*length` whenever there is a key.
 `buffer` may be NULL if `room` is 0, to ask for the length.

 # Safety
 `handle` is a handle; `url` is readable for `url_len` bytes, `buffer` writable for `room`, and `length`
 writable; nothing that is written overlaps anything else.
 */
tamis_status tamis_canon_key(const tamis_canon *handle,
                             const char *url,
                             size_t url_len,
                             char *buffer,
                             size_t room,
                             size_t *length);

/*
 The URL to fetch, as a browser would ask for it; never to compare by. Else as `tamis_canon_key`.

 Empty under the profiles of other tools, where those make keys of what no browser would fetch.

 # Safety
 As `tamis_canon_key`.
 */
tamis_status tamis_canon_fetch_url(const tamis_canon *handle,
                                   const char *url,
                                   size_t url_len,
                                   char *buffer,
                                   size_t room,
                                   size_t *length);

/*
 The fingerprint of the key of a URL: 16 bytes, SipHash-2-4-128 under `secret` (16 bytes) over the id of
 the handle, a zero byte and the key.

 # Safety
 `handle` is a handle; `url` is readable for `url_len` bytes, `secret` for 16; `fingerprint` is writable
 for 16 and overlaps nothing else.
 */
tamis_status tamis_canon_fingerprint(const tamis_canon *handle,
                                     const char *url,
                                     size_t url_len,
                                     const uint8_t *secret,
                                     uint8_t *fingerprint);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAMIS_H */
