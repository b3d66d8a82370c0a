#%Module1.0
# Environment Modules: modulefiles/powersweep/@VERSION@ (without the ending). The archive is unpacked in `root`.
set root /opt/powersweep/@VERSION@

proc ModulesHelp { } {
    puts stderr "powersweep: parameter sweeps of power-aware cluster scheduling. First steps: powersweep --help, man powersweep."
}
module-whatis "powersweep @VERSION@: parameter sweeps of power-aware cluster scheduling"
conflict powersweep

prepend-path PATH $root/bin
prepend-path MANPATH $root/share/man
prepend-path FPATH $root/share/zsh/site-functions
