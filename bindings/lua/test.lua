-- Holds tamis.lua to the shared vectors: lines of hexadecimal fields on stdin, as crates/capi/tests/smoke.c.

local tamis = require("tamis").load(arg[1])

local function unhex(hex)
  return (hex:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end))
end

local secret = unhex("000102030405060708090a0b0c0d0e0f")
local canons, vectors = {}, 0
for line in io.lines() do
  local profile, input, key, print = line:match("^(%S+)\t(%x*)\t(%S+)\t(%S+)$")
  assert(profile, "no vector: " .. line)
  canons[profile] = canons[profile] or tamis.new(profile)
  local canon, url = canons[profile], unhex(input)
  local made, why, status = canon:key(url)
  if key == "-" then
    assert(made == nil and #why > 0 and status >= 16, url)
    assert(canon:fingerprint(url, secret) == nil, url)
  else
    assert(made == unhex(key), url .. ": " .. tostring(made or why))
    assert(canon:fingerprint(url, secret) == unhex(print), url)
  end
  vectors = vectors + 1
end

local canon = tamis.new()
assert(canon:id() == "default/1")
assert(canon:fetch_url("HTTP://e.com?b&a#c") == "http://e.com/?b&a#c")
-- Longer than the first buffer.
local long = "http://e.com/" .. ("x"):rep(5000)
assert(canon:key(long) == long)
assert(not pcall(canon.fingerprint, canon, long, "short"))

local file = assert(io.open(arg[2], "rb"))
local set = file:read("*a")
file:close()
assert(tamis.new("default", { set }):key("http://e.com/?utm_source=x&a=1") == "http://e.com/?a=1")
local fine, why = pcall(tamis.new, "default", { "{" })
assert(not fine and why:find("rule set"), why)
assert(not pcall(tamis.new, "none"))

print(vectors .. " vectors")
