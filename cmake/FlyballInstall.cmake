# `cmake --install build/release --prefix /usr`: programs, presets, the guard's unit, its group, its configuration, its
# page of the manual. The fake boards are not installed: nothing may find their library in place of the real one.

install(TARGETS flyball flyball-guard RUNTIME DESTINATION bin)
install(DIRECTORY presets/ DESTINATION share/flyball/presets)
install(FILES deploy/man/flyball-guard.8 DESTINATION share/man/man8)
install(FILES deploy/sysusers.d/flyball.conf DESTINATION lib/sysusers.d)
install(FILES deploy/flyball.toml DESTINATION share/doc/flyball/examples)

# The unit names the programs and the configuration where this installation has them; a configuration that is there
# already is the site's and stays.
install(CODE [[
  set(etc "${CMAKE_INSTALL_PREFIX}/etc")
  if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
    set(etc /etc)
  endif()
]])
install(CODE "set(from \"${CMAKE_SOURCE_DIR}/deploy\")\nset(made \"${CMAKE_BINARY_DIR}/install\")")
install(CODE [[
  file(READ "${from}/systemd/flyball-guard.service" unit)
  string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_PREFIX}/bin/" unit "${unit}")
  string(REPLACE "/etc/flyball/" "${etc}/flyball/" unit "${unit}")
  file(WRITE "${made}/flyball-guard.service" "${unit}")
  file(INSTALL "${made}/flyball-guard.service" DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/systemd/system")
  if(NOT EXISTS "$ENV{DESTDIR}${etc}/flyball/flyball.toml")
    file(INSTALL "${from}/flyball.toml" DESTINATION "${etc}/flyball")
  endif()
]])
