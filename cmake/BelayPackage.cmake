# cmake --install, and the .deb and .tar.gz that CPack makes from it.

include(GNUInstallDirs)

if(TARGET belay)
  install(TARGETS belay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

  # Man pages and completions come out of the program itself, so that they
  # cannot disagree with it.
  set(docs_dir "${PROJECT_BINARY_DIR}/share")
  add_custom_command(
    OUTPUT "${docs_dir}/stamp"
    COMMAND ${CMAKE_COMMAND} -DBELAY=$<TARGET_FILE:belay> -DOUT=${docs_dir}
            -P ${PROJECT_SOURCE_DIR}/cmake/MakeDocs.cmake
    DEPENDS belay ${PROJECT_SOURCE_DIR}/cmake/MakeDocs.cmake
    VERBATIM)
  add_custom_target(belay_docs ALL DEPENDS "${docs_dir}/stamp")

  install(DIRECTORY "${docs_dir}/man/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
          FILES_MATCHING PATTERN "belay*.1*")
  install(FILES "${docs_dir}/completions/belay.bash" RENAME belay OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES "${docs_dir}/completions/_belay" OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES "${docs_dir}/completions/belay.fish" OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME belay)
set(CPACK_PACKAGE_VENDOR "Belay developers")
set(CPACK_PACKAGE_CONTACT "Belay developers <belay@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "\
Belay records every state that a coding agent leaves a project in, by edit tool
or by shell, in git or not, and takes the project back to any of them. A
rollback is all or nothing and can itself be undone.")
set(CPACK_PACKAGE_INSTALL_DIRECTORY belay)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS git)

# Version, system and processor in the name; one directory inside, which runs
# from wherever it is unpacked.
string(TOLOWER "${CMAKE_SYSTEM_NAME}" system)
set(CPACK_ARCHIVE_FILE_NAME "belay-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_FILE_NAME "${CPACK_ARCHIVE_FILE_NAME}")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/PackageOptions.cmake")
include(CPack)
