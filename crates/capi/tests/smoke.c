/* Calls every function of tamis.h and holds it to the shared vectors.
 *
 * Reads lines "profile TAB input TAB key TAB fingerprint" in hexadecimal, "-" where there is no key, and
 * ends with 1 if one differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tamis.h"

#define LINE_MAX 65536

static int failures;
static unsigned long allocations;

/* The C library's own, so that calls of the usual names can be counted here. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t bytes) { allocations++; return __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { allocations++; return __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { allocations++; return __libc_realloc(old, bytes); }

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      failures++;                                                            \
    }                                                                        \
  } while (0)

static size_t unhex(const char *hex, unsigned char *out) {
  size_t length = strlen(hex) / 2;
  for (size_t i = 0; i < length; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) exit(2);
    out[i] = (unsigned char)byte;
  }
  return length;
}

/* Whether a key is promised to come without allocations: under our profiles, without rule sets, if the host is ASCII. */
static int is_promised(const char *profile, const unsigned char *input, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (input[i] >= 0x80) return 0;
  }
  return strcmp(profile, "strict") == 0 || strcmp(profile, "default") == 0 || strcmp(profile, "classic") == 0;
}

static void check_vector(const char *profile, tamis_canon *handle, char *input_hex, char *key_hex, char *print_hex) {
  static unsigned char input[LINE_MAX], want[LINE_MAX], got[LINE_MAX];
  unsigned char secret[16], print[16], want_print[16];
  size_t input_len = unhex(input_hex, input), got_len = 0;
  for (int i = 0; i < 16; i++) secret[i] = (unsigned char)i;
  tamis_status status =
      tamis_canon_key(handle, (char *)input, input_len, (char *)got, sizeof got, &got_len);
  tamis_status print_status = tamis_canon_fingerprint(handle, (char *)input, input_len, secret, print);
  CHECK(status == print_status);
  if (strcmp(key_hex, "-") == 0) {
    CHECK(status >= TAMIS_STATUS_REJECT_OTHER);
    return;
  }
  size_t want_len = unhex(key_hex, want);
  if (status != TAMIS_STATUS_OK || got_len != want_len || memcmp(got, want, want_len) != 0) {
    fprintf(stderr, "%.*s: %s\n  got  %.*s\n  want %.*s\n", (int)input_len, input, tamis_status_text(status),
            (int)got_len, got, (int)want_len, want);
    failures++;
    return;
  }
  unsigned long before = allocations;
  tamis_canon_key(handle, (char *)input, input_len, (char *)got, sizeof got, &got_len);
  tamis_canon_fingerprint(handle, (char *)input, input_len, secret, print);
  if (allocations != before && is_promised(profile, input, input_len)) {
    fprintf(stderr, "%.*s: %lu allocations\n", (int)input_len, input, allocations - before);
    failures++;
  }
  unhex(print_hex, want_print);
  CHECK(memcmp(print, want_print, 16) == 0);
  /* One byte too few: nothing is written but the length. */
  memset(got, '#', sizeof got);
  got_len = 0;
  status = tamis_canon_key(handle, (char *)input, input_len, (char *)got, want_len - 1, &got_len);
  CHECK(status == TAMIS_STATUS_BUFFER_TOO_SMALL && got_len == want_len && got[0] == '#');
}

static void check_faults(void) {
  tamis_canon *handle = (tamis_canon *)&failures;
  char buffer[256];
  unsigned char secret[16] = {0}, print[16];
  size_t length = 0;
  CHECK(tamis_abi_version() == TAMIS_ABI_VERSION);
  CHECK(strlen(tamis_status_text(-7)) > 0);
  CHECK(tamis_canon_new("none", 4, &handle) == TAMIS_STATUS_UNKNOWN_PROFILE && handle == NULL);
  CHECK(tamis_canon_new(NULL, 7, &handle) == TAMIS_STATUS_NULL && handle == NULL);
  CHECK(tamis_canon_new("default", 7, NULL) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_key(NULL, "http://e.com", 12, buffer, sizeof buffer, &length) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_id(NULL, buffer, sizeof buffer, &length) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_new("default", 7, &handle) == TAMIS_STATUS_OK && handle != NULL);
  CHECK(tamis_canon_id(handle, buffer, sizeof buffer, &length) == TAMIS_STATUS_OK);
  CHECK(length == 9 && memcmp(buffer, "default/1", 9) == 0);
  CHECK(tamis_canon_key(handle, NULL, 3, buffer, sizeof buffer, &length) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_key(handle, "http://e.com", (size_t)-1, buffer, sizeof buffer, &length) ==
        TAMIS_STATUS_LENGTH);
  CHECK(tamis_canon_key(handle, "http://e.com", 12, buffer, sizeof buffer, NULL) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_key(handle, "http://e.com", 12, NULL, 3, &length) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_key(handle, "http://e.com", 12, NULL, 0, &length) == TAMIS_STATUS_BUFFER_TOO_SMALL);
  CHECK(length == 13);
  CHECK(tamis_canon_key(handle, NULL, 0, buffer, sizeof buffer, &length) == TAMIS_STATUS_REJECT_NO_SCHEME);
  CHECK(tamis_canon_key(handle, "http://[1]", 10, buffer, sizeof buffer, &length) ==
        TAMIS_STATUS_REJECT_HOST_IPV6);
  CHECK(tamis_canon_fetch_url(handle, "HTTP://e.com?b&a#c", 18, buffer, sizeof buffer, &length) ==
        TAMIS_STATUS_OK);
  CHECK(length == 19 && memcmp(buffer, "http://e.com/?b&a#c", 19) == 0);
  CHECK(tamis_canon_fingerprint(handle, "http://e.com", 12, NULL, print) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_fingerprint(handle, "http://e.com", 12, secret, NULL) == TAMIS_STATUS_NULL);
  tamis_canon_free(handle);
  tamis_canon_free(NULL);
}

static void check_rules(const char *path) {
  static unsigned char json[LINE_MAX];
  char buffer[256], message[8];
  size_t length = 0;
  tamis_canon *handle = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  tamis_bytes set = {json, fread(json, 1, sizeof json, file)}, none = {NULL, 5}, bad = {json, 3};
  fclose(file);
  CHECK(tamis_canon_new_with_rules("default", 7, &set, 1, &handle, NULL, 0, NULL) == TAMIS_STATUS_OK);
  CHECK(tamis_canon_key(handle, "http://e.com/?utm_source=x&a=1", 30, buffer, sizeof buffer, &length) ==
        TAMIS_STATUS_OK);
  CHECK(length == 17 && memcmp(buffer, "http://e.com/?a=1", 17) == 0);
  tamis_canon_free(handle);
  CHECK(tamis_canon_new_with_rules("default", 7, NULL, 1, &handle, NULL, 0, NULL) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_new_with_rules("default", 7, &none, 1, &handle, NULL, 0, NULL) == TAMIS_STATUS_NULL);
  CHECK(tamis_canon_new_with_rules("default", 7, &bad, 1, &handle, message, sizeof message, &length) ==
        TAMIS_STATUS_RULE_SET);
  CHECK(handle == NULL && length == sizeof message);
  CHECK(tamis_canon_new_with_rules("default", 7, &bad, 1, &handle, NULL, 0, NULL) == TAMIS_STATUS_RULE_SET);
}

int main(int argc, char **argv) {
  static char line[4 * LINE_MAX];
  tamis_canon *handle = NULL;
  char profile[64] = "";
  int vectors = 0;
  if (argc != 2) return 2;
  check_faults();
  check_rules(argv[1]);
  while (fgets(line, sizeof line, stdin)) {
    char *name = strtok(line, "\t\n"), *input = strtok(NULL, "\t\n");
    char *key = strtok(NULL, "\t\n"), *print = strtok(NULL, "\t\n");
    if (!print) return 2;
    if (strcmp(name, profile) != 0) {
      tamis_canon_free(handle);
      snprintf(profile, sizeof profile, "%s", name);
      if (tamis_canon_new(name, strlen(name), &handle) != TAMIS_STATUS_OK) return 2;
    }
    check_vector(profile, handle, input, key, print);
    vectors++;
  }
  tamis_canon_free(handle);
  printf("%d vectors\n", vectors);
  return failures != 0;
}
