# Spack: copy to packages/powersweep/package.py of a repository of packages. Builds from source.
from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:  # Spack before 1.0
    pass


class Powersweep(Package):
    """Parameter sweeps of power-aware cluster scheduling: simulator and task farm."""

    url = "@RELEASES@/powersweep-@VERSION@.tar.gz"

    license("Apache-2.0 OR MIT")

    version("@VERSION@", sha256="@SHA256_SOURCE@")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@@RUST@:", type="build")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("install", "--locked", "--root", prefix, "--path", "cli", "--features", "cloud,figures,wasm", "--no-track")

    @run_after("install")
    def write_pages(self):
        powersweep = Executable(self.prefix.bin.powersweep)
        powersweep("man", "--output", self.prefix.share.man.man1)
        mkdirp(bash_completion_path(self.prefix), zsh_completion_path(self.prefix), fish_completion_path(self.prefix))
        for shell, path in [
            ("bash", bash_completion_path(self.prefix) / "powersweep"),
            ("zsh", zsh_completion_path(self.prefix) / "_powersweep"),
            ("fish", fish_completion_path(self.prefix) / "powersweep.fish"),
        ]:
            with open(path, "w") as script:
                powersweep("completions", shell, output=script)

    def test_version(self):
        """The binary runs and has the version of the package."""
        powersweep = Executable(self.prefix.bin.powersweep)
        assert str(self.spec.version) in powersweep("--version", output=str)
