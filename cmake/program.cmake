# The rudder program: src/{graph,partition,sample,comm,nn,train,trace,report,agent,cli}.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
find_library(METIS_LIBRARY metis REQUIRED)
find_library(OPENBLAS_LIBRARY openblas REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu openblas REQUIRED)

# The compiler wrapper says what to link, so that both MPI libraries can be installed side by side.
find_program(RUDDER_MPICC mpicc.${RUDDER_MPI} REQUIRED)
find_program(RUDDER_MPIEXEC mpiexec.${RUDDER_MPI} REQUIRED)
set(MPI_C_COMPILER ${RUDDER_MPICC})
set(MPIEXEC_EXECUTABLE ${RUDDER_MPIEXEC})
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS C)

file(GLOB rudder_program_sources CONFIGURE_DEPENDS
     src/graph/*.c src/partition/*.c src/sample/*.c src/comm/*.c src/nn/*.c src/train/*.c src/trace/*.c src/report/*.c
     src/agent/*.c)
list(FILTER rudder_program_sources EXCLUDE REGEX "src/agent/llama_")
add_library(rudder_program STATIC ${rudder_program_sources})
target_link_libraries(rudder_program PUBLIC rudder_objects PkgConfig::ZLIB PkgConfig::ZSTD PkgConfig::CJSON ${METIS_LIBRARY}
                      ${OPENBLAS_LIBRARY} MPI::MPI_C)
target_sources(rudder_program PRIVATE $<TARGET_OBJECTS:rudder_objects>)
target_include_directories(rudder_program PUBLIC ${OPENBLAS_INCLUDE})
target_compile_definitions(rudder_program PUBLIC
    RUDDER_MPI_NAME="${RUDDER_MPI}" RUDDER_MPIEXEC="${RUDDER_MPIEXEC}")

# The embedded model: libllama, in the program only. Without it the agent says so.
add_library(rudder_llama STATIC)
if(RUDDER_LLAMA_DIR)
    enable_language(CXX)
    target_sources(rudder_llama PRIVATE src/agent/llama_embedded.c)
    target_include_directories(rudder_llama SYSTEM PRIVATE ${RUDDER_LLAMA_DIR}/include)
    target_link_libraries(rudder_llama PRIVATE
        ${RUDDER_LLAMA_DIR}/lib/libllama.a ${RUDDER_LLAMA_DIR}/lib/libggml.a ${RUDDER_LLAMA_DIR}/lib/libggml-cpu.a
        ${RUDDER_LLAMA_DIR}/lib/libggml-base.a stdc++ dl)
else()
    target_sources(rudder_llama PRIVATE src/agent/llama_absent.c)
endif()
target_link_libraries(rudder_llama PUBLIC rudder_program)

file(GLOB rudder_cli_sources CONFIGURE_DEPENDS src/cli/*.c)
add_executable(rudder_cli ${rudder_cli_sources})
set_target_properties(rudder_cli PROPERTIES OUTPUT_NAME rudder)
target_link_libraries(rudder_cli PRIVATE rudder_program rudder_llama rudder_program)
install(TARGETS rudder_cli DESTINATION ${CMAKE_INSTALL_BINDIR})
