-- Canonical keys of URLs and their fingerprints, through the C ABI of Tamis. For LuaJIT.
--
--   local tamis = require("tamis").load("target/release/libtamis_capi.so")
--   local canon = tamis.new("default")
--   canon:key("HTTP://Example.com:80/?b=1&a=2")  --> "http://example.com/?a=2&b=1"
--   canon:key("no url")                          --> nil, "the URL has no scheme; ...", 18
--   canon:fingerprint(url, secret)               --> 16 bytes, of a secret of 16 bytes
--
-- A handle belongs to one Lua state. Declarations are those of crates/capi/include/tamis.h; a test compares.

local ffi = require("ffi")

ffi.cdef [[
typedef int32_t tamis_status;
typedef struct tamis_canon tamis_canon;
typedef struct tamis_bytes { const uint8_t *data; size_t len; } tamis_bytes;

uint32_t tamis_abi_version(void);
const char *tamis_status_text(int32_t status);
tamis_status tamis_canon_new(const char *profile, size_t profile_len, tamis_canon **handle);
tamis_status tamis_canon_new_with_rules(const char *profile, size_t profile_len, const tamis_bytes *sets,
  size_t set_count, tamis_canon **handle, char *message, size_t message_room, size_t *message_len);
void tamis_canon_free(tamis_canon *handle);
tamis_status tamis_canon_id(const tamis_canon *handle, char *buffer, size_t room, size_t *length);
tamis_status tamis_canon_key(const tamis_canon *handle, const char *url, size_t url_len, char *buffer,
  size_t room, size_t *length);
tamis_status tamis_canon_fetch_url(const tamis_canon *handle, const char *url, size_t url_len, char *buffer,
  size_t room, size_t *length);
tamis_status tamis_canon_fingerprint(const tamis_canon *handle, const char *url, size_t url_len,
  const uint8_t *secret, uint8_t *fingerprint);
]]

local ABI_VERSION = 1
local OK, BUFFER_TOO_SMALL = 0, 4

local Canon = {}
Canon.__index = Canon

-- Calls `name` with the handle, `...` and a buffer that grows when it is too small.
local function text_of(self, name, ...)
  local call, args = self.abi[name], { ... }
  args[#args + 1] = true
  local last = #args
  while true do
    args[last], args[last + 1], args[last + 2] = self.buffer, self.room, self.length
    local status = call(self.handle, unpack(args, 1, last + 2))
    if status == OK then
      return ffi.string(self.buffer, self.length[0])
    elseif status ~= BUFFER_TOO_SMALL then
      return nil, ffi.string(self.abi.tamis_status_text(status)), status
    end
    self.room = tonumber(self.length[0])
    self.buffer = ffi.new("char[?]", self.room)
  end
end

-- The key of a URL: what to compare by. Or nil, why, and the number of the status.
function Canon:key(url)
  return text_of(self, "tamis_canon_key", url, #url)
end

-- The URL to fetch, likewise.
function Canon:fetch_url(url)
  return text_of(self, "tamis_canon_fetch_url", url, #url)
end

-- What makes the keys; keys of two ids are not to be compared.
function Canon:id()
  return text_of(self, "tamis_canon_id")
end

-- The fingerprint of the key of a URL under a secret of 16 bytes: 16 bytes. Or nil, why, and the status.
function Canon:fingerprint(url, secret)
  assert(#secret == 16, "the secret must have 16 bytes")
  local status = self.abi.tamis_canon_fingerprint(self.handle, url, #url, ffi.cast("const uint8_t *", secret),
    self.print)
  if status ~= OK then
    return nil, ffi.string(self.abi.tamis_status_text(status)), status
  end
  return ffi.string(self.print, 16)
end

local M = {}

-- Loads the library by path, or by name as the system finds it.
function M.load(path)
  local library = ffi.load(path or "tamis_capi")
  local version = library.tamis_abi_version()
  assert(version == ABI_VERSION, "the library has ABI version " .. version .. ", this module is for " .. ABI_VERSION)
  local tamis = {}

  -- A handle for a profile, with rule sets (a list of JSON texts) if there are any. Faults are errors.
  function tamis.new(profile, sets)
    profile, sets = profile or "default", sets or {}
    local handle, length = ffi.new("tamis_canon *[1]"), ffi.new("size_t[1]")
    local message, status = ffi.new("char[512]"), nil
    if #sets == 0 then
      status = library.tamis_canon_new(profile, #profile, handle)
    else
      local bytes = ffi.new("tamis_bytes[?]", #sets)
      for i, set in ipairs(sets) do
        bytes[i - 1].data, bytes[i - 1].len = ffi.cast("const uint8_t *", set), #set
      end
      status = library.tamis_canon_new_with_rules(profile, #profile, bytes, #sets, handle, message, 512, length)
    end
    if status ~= OK then
      local why = ffi.string(library.tamis_status_text(status))
      error(length[0] > 0 and why .. ": " .. ffi.string(message, length[0]) or why, 2)
    end
    return setmetatable({
      abi = library,
      handle = ffi.gc(handle[0], library.tamis_canon_free),
      buffer = ffi.new("char[?]", 512),
      room = 512,
      length = length,
      print = ffi.new("uint8_t[16]"),
    }, Canon)
  end

  return tamis
end

return M
