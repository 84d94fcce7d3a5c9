# librudder as users link it: shared with hidden symbols, and static with all but rudder_* made local.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(rudder SHARED $<TARGET_OBJECTS:rudder_objects>)
set_target_properties(rudder PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_include_directories(rudder PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(rudder PUBLIC Threads::Threads m)
target_link_options(rudder PRIVATE -Wl,--gc-sections)
if(NOT RUDDER_FUZZ) # clang leaves the sanitizers' functions to the program
    target_link_options(rudder PRIVATE -Wl,--no-undefined)
endif()

# One relocatable object whose hidden symbols are local, so that the archive defines nothing but rudder_*.
add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/librudder.a
    COMMAND ${CMAKE_LINKER} -r -o librudder-static.o $<TARGET_OBJECTS:rudder_objects>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden librudder-static.o
    COMMAND ${CMAKE_COMMAND} -E rm -f librudder.a
    COMMAND ${CMAKE_AR} rcs librudder.a librudder-static.o
    COMMAND_EXPAND_LISTS VERBATIM DEPENDS rudder_objects $<TARGET_OBJECTS:rudder_objects>)
add_custom_target(rudder_static_archive ALL DEPENDS ${CMAKE_BINARY_DIR}/librudder.a)
add_library(rudder_static STATIC IMPORTED GLOBAL)
add_dependencies(rudder_static rudder_static_archive)
set_target_properties(rudder_static PROPERTIES
    IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/librudder.a
    INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/include
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m")

install(TARGETS rudder EXPORT RudderTargets)
install(FILES ${CMAKE_BINARY_DIR}/librudder.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/rudder DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT RudderTargets NAMESPACE Rudder:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Rudder)
configure_file(cmake/rudder.pc.in rudder.pc @ONLY)
configure_package_config_file(cmake/RudderConfig.cmake.in RudderConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Rudder)
write_basic_package_version_file(RudderConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rudder.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/RudderConfig.cmake ${CMAKE_BINARY_DIR}/RudderConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Rudder)
