# The Debian package: program, manual, library, shipped model and a systemd unit. `make package` (tools/package.sh) builds it.
install(FILES deploy/octavo.service DESTINATION lib/systemd/system COMPONENT service)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION share/man/man1 COMPONENT manual OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME octavo)
set(CPACK_PACKAGE_CONTACT "The Octavo authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM inference and serving: a drop-in for `vllm serve`")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program manual library model service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the packages of the libraries that it links
include(CPack)
